/* SPDX-License-Identifier: MIT
 * cuDNN: batch norm, pooling and the grid sampler.
 */
#include "libraries/dnn_api.h"

#define BN_TRAINING                                                                               \
	"_ZN5cudnn24bn_fw_tr_1C11_singlereadIfLi512ELb1ELi1ELi2ELi0EEEv17cudnnTensorStructPKfS1_" \
	"PfS3_ff"
#define BN_INFERENCE "_ZN5cudnn19bn_fw_inf_1C11_NCHWIffLb1ELi1EEEvff17cudnnTensorStructPKfS1_PfS3_f"
#define BN_BACKWARD                                                                                \
	"_ZN5cudnn21bn_bw_1C11_singlereadIfLi512ELb1ELi1ELi2ELi0EEEvffff17cudnnTensorStructPKfS1_" \
	"S3_PfS4_f"
#define POOLING "_ZN5cudnn20pooling_fw_4d_kernelIffLi2ELb0EEEv17cudnnTensorStructPKfS1_Pf"
#define SAMPLER_FORWARD "_ZN5cudnn17sampler_fw_kernelIfLi2EEEv17cudnnTensorStructPKfS3_Pf"
#define SAMPLER_BACKWARD "_ZN5cudnn17sampler_bw_kernelIfLi2EEEv17cudnnTensorStructPKfS3_Pf"

#define BITS_BYTES 8 /* of the mask that a fused activation keeps for the way back */

static cudnnStatus_t launch(cudnnHandle_t handle, const char *name, const cudnnTensorDescriptor_t x)
{
	return x ? dnn_launch(handle, name, dnn_elements(x->dims, x->count), 512)
		 : CUDNN_STATUS_BAD_PARAM;
}

DNN_API(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize,
	(cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
		const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t zDesc,
		const cudnnTensorDescriptor_t yDesc,
		const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc,
		const cudnnActivationDescriptor_t activationDesc, size_t *sizeInBytes),
	(handle, mode, bnOps, xDesc, zDesc, yDesc, bnScaleBiasMeanVarDesc, activationDesc,
		sizeInBytes))
{
	*sizeInBytes = 0;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetBatchNormalizationBackwardExWorkspaceSize,
	(cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
		const cudnnTensorDescriptor_t xDesc, const cudnnTensorDescriptor_t yDesc,
		const cudnnTensorDescriptor_t dyDesc, const cudnnTensorDescriptor_t dzDesc,
		const cudnnTensorDescriptor_t dxDesc,
		const cudnnTensorDescriptor_t dBnScaleBiasDesc,
		const cudnnActivationDescriptor_t activationDesc, size_t *sizeInBytes),
	(handle, mode, bnOps, xDesc, yDesc, dyDesc, dzDesc, dxDesc, dBnScaleBiasDesc,
		activationDesc, sizeInBytes))
{
	*sizeInBytes = 0;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnGetBatchNormalizationTrainingExReserveSpaceSize,
	(cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
		const cudnnActivationDescriptor_t activationDesc,
		const cudnnTensorDescriptor_t xDesc, size_t *sizeInBytes),
	(handle, mode, bnOps, activationDesc, xDesc, sizeInBytes))
{
	*sizeInBytes = bnOps ? (size_t)dnn_elements(xDesc->dims, xDesc->count) / BITS_BYTES : 0;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnBatchNormalizationForwardTrainingEx,
	(cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
		const void *alpha, const void *beta, const cudnnTensorDescriptor_t xDesc,
		const void *xData, const cudnnTensorDescriptor_t zDesc, const void *zData,
		const cudnnTensorDescriptor_t yDesc, void *yData,
		const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
		const void *bnBias, double exponentialAverageFactor, void *resultRunningMean,
		void *resultRunningVariance, double epsilon, void *resultSaveMean,
		void *resultSaveInvVariance, cudnnActivationDescriptor_t activationDesc,
		void *workspace, size_t workSpaceSizeInBytes, void *reserveSpace,
		size_t reserveSpaceSizeInBytes),
	(handle, mode, bnOps, alpha, beta, xDesc, xData, zDesc, zData, yDesc, yData,
		bnScaleBiasMeanVarDesc, bnScale, bnBias, exponentialAverageFactor,
		resultRunningMean, resultRunningVariance, epsilon, resultSaveMean,
		resultSaveInvVariance, activationDesc, workspace, workSpaceSizeInBytes,
		reserveSpace, reserveSpaceSizeInBytes))
{
	return launch(handle, BN_TRAINING, xDesc);
}

DNN_API(cudnnBatchNormalizationForwardInference,
	(cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha, const void *beta,
		const cudnnTensorDescriptor_t xDesc, const void *x,
		const cudnnTensorDescriptor_t yDesc, void *y,
		const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void *bnScale,
		const void *bnBias, const void *estimatedMean, const void *estimatedVariance,
		double epsilon),
	(handle, mode, alpha, beta, xDesc, x, yDesc, y, bnScaleBiasMeanVarDesc, bnScale, bnBias,
		estimatedMean, estimatedVariance, epsilon))
{
	return launch(handle, BN_INFERENCE, xDesc);
}

DNN_API(cudnnBatchNormalizationBackwardEx,
	(cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t bnOps,
		const void *alphaDataDiff, const void *betaDataDiff, const void *alphaParamDiff,
		const void *betaParamDiff, const cudnnTensorDescriptor_t xDesc, const void *xData,
		const cudnnTensorDescriptor_t yDesc, const void *yData,
		const cudnnTensorDescriptor_t dyDesc, const void *dyData,
		const cudnnTensorDescriptor_t dzDesc, void *dzData,
		const cudnnTensorDescriptor_t dxDesc, void *dxData,
		const cudnnTensorDescriptor_t dBnScaleBiasDesc, const void *bnScaleData,
		const void *bnBiasData, void *dBnScaleData, void *dBnBiasData, double epsilon,
		const void *savedMean, const void *savedInvVariance,
		cudnnActivationDescriptor_t activationDesc, void *workSpace,
		size_t workSpaceSizeInBytes, void *reserveSpace, size_t reserveSpaceSizeInBytes),
	(handle, mode, bnOps, alphaDataDiff, betaDataDiff, alphaParamDiff, betaParamDiff, xDesc,
		xData, yDesc, yData, dyDesc, dyData, dzDesc, dzData, dxDesc, dxData,
		dBnScaleBiasDesc, bnScaleData, bnBiasData, dBnScaleData, dBnBiasData, epsilon,
		savedMean, savedInvVariance, activationDesc, workSpace, workSpaceSizeInBytes,
		reserveSpace, reserveSpaceSizeInBytes))
{
	return launch(handle, BN_BACKWARD, xDesc);
}

DNN_API(cudnnPoolingForward,
	(cudnnHandle_t handle, const cudnnPoolingDescriptor_t poolingDesc, const void *alpha,
		const cudnnTensorDescriptor_t xDesc, const void *x, const void *beta,
		const cudnnTensorDescriptor_t yDesc, void *y),
	(handle, poolingDesc, alpha, xDesc, x, beta, yDesc, y))
{
	return launch(handle, POOLING, xDesc);
}

DNN_API(cudnnSpatialTfSamplerForward,
	(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t stDesc, const void *alpha,
		const cudnnTensorDescriptor_t xDesc, const void *x, const void *grid,
		const void *beta, cudnnTensorDescriptor_t yDesc, void *y),
	(handle, stDesc, alpha, xDesc, x, grid, beta, yDesc, y))
{
	return launch(handle, SAMPLER_FORWARD, xDesc);
}

DNN_API(cudnnSpatialTfSamplerBackward,
	(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t stDesc, const void *alpha,
		const cudnnTensorDescriptor_t xDesc, const void *x, const void *beta,
		const cudnnTensorDescriptor_t dxDesc, void *dx, const void *alphaDgrid,
		const cudnnTensorDescriptor_t dyDesc, const void *dy, const void *grid,
		const void *betaDgrid, void *dgrid),
	(handle, stDesc, alpha, xDesc, x, beta, dxDesc, dx, alphaDgrid, dyDesc, dy, grid, betaDgrid,
		dgrid))
{
	return launch(handle, SAMPLER_BACKWARD, xDesc);
}
